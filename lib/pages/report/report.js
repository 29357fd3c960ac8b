(function(){
'use strict';
// Tables: a click on a heading sorts; numbers by their key, words as words; a third click gives the first order again.
document.querySelectorAll('table.sortable').forEach(function(table){
  var body=table.tBodies[0],first=Array.prototype.slice.call(body.rows);
  Array.prototype.forEach.call(table.tHead.rows[0].cells,function(head,column){
    var button=document.createElement('button');
    button.type='button';
    while(head.firstChild)button.appendChild(head.firstChild);
    head.appendChild(button);
    button.addEventListener('click',function(){
      var now=head.getAttribute('aria-sort'),next=now==='ascending'?'descending':now==='descending'?null:'ascending';
      Array.prototype.forEach.call(table.tHead.rows[0].cells,function(other){other.removeAttribute('aria-sort')});
      var rows=first.slice();
      if(next){
        head.setAttribute('aria-sort',next);
        var sign=next==='ascending'?1:-1;
        var key=function(row){var cell=row.cells[column],k=cell.getAttribute('data-key');return k===null?cell.textContent:parseFloat(k)};
        rows.sort(function(a,b){
          var x=key(a),y=key(b),xn=typeof x==='number',yn=typeof y==='number';
          if(xn!==yn)return xn?-1:1;  // cells without a number come last either way
          return sign*(xn?x-y:x.localeCompare(y));
        });
      }
      rows.forEach(function(row){body.appendChild(row)});
    });
  });
});
// A table that continues beyond the edge fades there, until its end is visible.
document.querySelectorAll('.scroll').forEach(function(box){
  var mark=function(){box.classList.toggle('more',box.scrollLeft+box.clientWidth<box.scrollWidth-2)};
  box.addEventListener('scroll',mark);window.addEventListener('resize',mark);mark();
  var fold=box.closest('details');if(fold)fold.addEventListener('toggle',mark);
});
// A link into a closed list of origins opens it.
function open(){var at=location.hash&&document.getElementById(location.hash.slice(1)),box=at&&at.closest('details');if(box){box.open=true;at.scrollIntoView()}}
window.addEventListener('hashchange',open);open();
// Curves: the values at the step under the pointer.
document.querySelectorAll('figure').forEach(function(figure){
  var data=figure.querySelector('script[type="application/json"]');
  if(!data)return;
  var panels=JSON.parse(data.textContent),tip=document.createElement('div');
  tip.className='tip';figure.appendChild(tip);
  var at=function(curve,panel){return curve.same===undefined?curve:panel.series[curve.same]};
  var nearest=function(xs,x){  // xs ascend
    var low=0,high=xs.length-1;
    while(high-low>1){var middle=(low+high)>>1;if(xs[middle]<=x)low=middle;else high=middle}
    return Math.abs(xs[high]-x)<Math.abs(xs[low]-x)?high:low;
  };
  var row=function(colours,name,value){
    var line=document.createElement('div');
    colours.forEach(function(c){var mark=document.createElement('i');mark.style.background=c;line.appendChild(mark)});
    line.appendChild(document.createTextNode(' '+name+': '));
    var strong=document.createElement('b');strong.textContent=value;line.appendChild(strong);
    return line;
  };
  figure.querySelectorAll('.pointer').forEach(function(area){
    var panel=panels[+area.dataset.panel],svg=area.ownerSVGElement,hair=area.querySelector('.hair');
    var x0=+area.dataset.x0,x1=+area.dataset.x1,low=+area.dataset.low,high=+area.dataset.high,log=!!area.dataset.log;
    var hide=function(){tip.style.display='none';hair.style.visibility='hidden'};
    var show=function(event){
      var point=svg.createSVGPoint();point.x=event.clientX;point.y=event.clientY;
      var inside=point.matrixTransform(svg.getScreenCTM().inverse()),share=Math.min(1,Math.max(0,(inside.x-x0)/(x1-x0)));
      var x=log?low*Math.pow(high/low,share):low+share*(high-low),best=null;
      panel.series.forEach(function(curve){
        var xs=at(curve,panel).x;if(!xs.length)return;
        var near=xs[nearest(xs,x)];if(best===null||Math.abs(near-x)<Math.abs(best-x))best=near;
      });
      if(best===null)return hide();
      var groups=[];
      panel.series.forEach(function(curve){
        var of=at(curve,panel),i=of.x.length?nearest(of.x,best):-1;
        if(i<0||of.x[i]!==best)return;
        var value=of.y[i]===null?'not finite':String(of.y[i]),group=groups.find(function(g){return g.value===value});
        if(!group)groups.push(group={value:value,colours:[],names:[]});
        group.colours.push(curve.colour);group.names.push(curve.name);
      });
      tip.textContent='';
      var head=document.createElement('div');head.textContent=panel.x+' '+best;tip.appendChild(head);
      groups.forEach(function(g){tip.appendChild(row(g.colours,g.names.length>2?g.names.length+' conditions':g.names.join(' and '),g.value))});
      share=log?Math.log(best/low)/Math.log(high/low):(best-low)/(high-low||1);
      var xs=x0+share*(x1-x0);
      hair.setAttribute('transform','translate('+xs+' 0)');hair.style.visibility='visible';
      tip.style.display='block';
      var box=figure.getBoundingClientRect(),left=event.clientX-box.left+14;
      if(left+tip.offsetWidth>box.width)left=Math.max(0,event.clientX-box.left-tip.offsetWidth-14);
      tip.style.left=left+'px';tip.style.top=Math.max(0,event.clientY-box.top-tip.offsetHeight-10)+'px';
    };
    area.addEventListener('pointermove',show);area.addEventListener('pointerdown',show);area.addEventListener('pointerleave',hide);
  });
});
})();
